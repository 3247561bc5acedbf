// The rules by which CI lints the scripts of the site. They are not modules: a page opened from a folder loads none.
const js = require("@eslint/js");
const globals = require("globals");

// what the scripts of the search take from each other
const shared = ["FIELD_NAMES", "SEARCH_INDEX", "Searcher", "TermCounts", "oneLetterApart", "snippetOf", "stem"];
const words = ["termsOf", "wordsOf"];

module.exports = [
  {
    files: ["web/*.js"],
    languageOptions: {
      ecmaVersion: 2023,
      sourceType: "script",
      globals: { ...globals.browser, ...Object.fromEntries([...shared, ...words].map((name) => [name, "readonly"])) },
    },
    linterOptions: { reportUnusedDisableDirectives: "error" },
    rules: {
      ...js.configs.recommended.rules,
      eqeqeq: "error",
      "no-redeclare": ["error", { builtinGlobals: false }],
      "no-unused-vars": ["error", { vars: "local" }],
      "no-var": "error",
      "prefer-const": "error",
    },
  },
];
