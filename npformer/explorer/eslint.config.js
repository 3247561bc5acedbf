// The rules by which CI lints the modules of the page (.ci/explorer). It is CommonJS, so that NODE_PATH finds the packages.
const js = require("@eslint/js");
const globals = require("globals");

module.exports = [
  {
    files: ["web/**/*.js"],
    languageOptions: { ecmaVersion: 2023, sourceType: "module", globals: globals.browser },
    linterOptions: { reportUnusedDisableDirectives: "error" },
    rules: { ...js.configs.recommended.rules, eqeqeq: "error", "no-var": "error", "prefer-const": "error" },
  },
];
