// Applies WorkspaceEdits to texts with vscode-languageserver-textdocument; cases in, texts out.
const fs = require("fs");
const { TextDocument } = require("vscode-languageserver-textdocument");

const [input, output] = process.argv.slice(2);
const texts = JSON.parse(fs.readFileSync(input, "utf8")).map(({ uri, before, edit }) => {
  let document = before === null ? undefined : TextDocument.create(uri, "plaintext", 1, before);
  for (const change of edit.documentChanges) {
    if (change.kind === "create") {
      document = document ?? TextDocument.create(change.uri, "plaintext", 1, "");
    } else {
      const text = TextDocument.applyEdits(document, change.edits);
      document = TextDocument.create(uri, "plaintext", 1, text);
    }
  }
  return document.getText();
});
fs.writeFileSync(output, JSON.stringify(texts));
