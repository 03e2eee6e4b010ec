import js from "@eslint/js";
import globals from "globals";

export default [
  { ignores: ["**/vendor/**", "**/node_modules/**"] },
  { ...js.configs.recommended, linterOptions: { reportUnusedDisableDirectives: "error" } },
  { files: ["kaudit/**/*.js"], languageOptions: { globals: { ...globals.browser, uPlot: "readonly" } } },
  { files: ["tests/**/*.js"], languageOptions: { globals: { ...globals.node, ...globals.browser } } },
];
