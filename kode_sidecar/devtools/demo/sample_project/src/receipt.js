// 茶铺小票 🍵 · the tea shop's receipt
import { priceOf } from "./menu.js";

export function total(items) {
  let sum = 0;
  for (const { name, count } of items) {
    /* 🧮 小计 */ sum += priceOf(name);
  }
  return sum;
}

export function receipt(items) {
  const rows = items.map(({ name, count }) => `🫖 ${name} × ${count}`);
  return [...rows, "—".repeat(16), `合计 ¥${total(items)}`].join("\n");
}
