import svelte from 'eslint-plugin-svelte'
import globals from 'globals'
import ts from 'typescript-eslint'

import svelteConfig from './svelte.config.js'

export default ts.config(
  { ignores: ['dist/', 'node_modules/', 'test-results/', 'playwright-report/', 'src/lib/api/schema.gen.ts'] },
  ...ts.configs.strict,
  ...svelte.configs.recommended,
  { languageOptions: { globals: { ...globals.browser, ...globals.node } } },
  {
    files: ['**/*.svelte', '**/*.svelte.ts'],
    languageOptions: { parserOptions: { parser: ts.parser, svelteConfig } },
  },
  {
    rules: {
      // What agents write is never markup.
      'svelte/no-at-html-tags': 'error',
      'svelte/button-has-type': 'error',
      // Kit's routing is not used here.
      'svelte/no-navigation-without-resolve': 'off',
      // Maps and sets that are no state of their own are plain ones, on purpose.
      'svelte/prefer-svelte-reactivity': 'off',
      'no-console': 'error',
      eqeqeq: ['error', 'smart'],
    },
  },
  { files: ['scripts/**', 'bench/**'], rules: { 'no-console': 'off' } },
)
