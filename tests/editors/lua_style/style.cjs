// node style.cjs [--write] STYLUA_TOML FILE...: names the files that StyLua would write otherwise.
const fs = require("node:fs");
const stylua = require("@johnnymorganz/stylua");

const write = process.argv[2] === "--write";
const [settings, ...files] = process.argv.slice(write ? 3 : 2);
const said = Object.fromEntries(
  fs
    .readFileSync(settings, "utf8")
    .split("\n")
    .filter((line) => line.includes("="))
    .map((line) => line.split("=").map((part) => part.trim().replaceAll('"', ""))),
);
// A call uses its configuration up.
function configuration() {
  const config = stylua.Config.new();
  config.column_width = Number(said.column_width);
  config.indent_type = stylua.IndentType[said.indent_type];
  config.indent_width = Number(said.indent_width);
  config.quote_style = stylua.QuoteStyle[said.quote_style];
  return config;
}

for (const file of files) {
  const text = fs.readFileSync(file, "utf8");
  const formatted = stylua.formatCode(text, configuration(), undefined, stylua.OutputVerification.None);
  if (formatted !== text) {
    if (write) fs.writeFileSync(file, formatted);
    console.log(file);
  }
}
