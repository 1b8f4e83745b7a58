// Reads {schema, cases: [{ref, value}]} from the file named; prints a JSON list of verdicts.
// Strict: an unknown keyword anywhere in the schema is an error, but for its own `x-kode`.
const fs = require("node:fs");
const Ajv = require("ajv/dist/2020");

const { schema, cases } = JSON.parse(fs.readFileSync(process.argv[2], "utf8"));
const ajv = new Ajv({ strict: true, allErrors: false });
ajv.addVocabulary(["x-kode"]);
ajv.addSchema(schema);
const verdicts = cases.map(({ ref, value }) => {
  const validate = ajv.getSchema(schema.$id + ref);
  return validate(value) ? null : ajv.errorsText(validate.errors);
});
process.stdout.write(JSON.stringify(verdicts));
