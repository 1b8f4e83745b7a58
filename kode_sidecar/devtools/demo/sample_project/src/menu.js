// 单价，元 · prices in yuan
const prices = new Map([
  ["龙井", 38],
  ["普洱", 42],
  ["Earl Grey", 30],
]);

export function priceOf(name) {
  const price = prices.get(name);
  if (price === undefined) throw new Error(`没有这种茶 · no such tea: ${name}`);
  return price;
}
