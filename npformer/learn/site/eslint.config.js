// The rules by which CI lints the scripts of the site. They are not modules: a page opened from a folder loads none.
const js = require("@eslint/js");
const globals = require("globals");

module.exports = [
  { ignores: ["web/vendor/"] },
  {
    files: ["web/*.js"],
    languageOptions: {
      ecmaVersion: 2023,
      sourceType: "script",
      globals: { ...globals.browser, MiniSearch: "readonly", Search: "readonly", _displayNextItem: "readonly" },
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
