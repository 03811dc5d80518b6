import ts from 'typescript-eslint'

export default ts.config(
  { ignores: ['dist/', 'node_modules/', 'test-results/', 'src/api/schema.gen.ts', 'webview/'] },
  ...ts.configs.strict,
  {
    rules: {
      'no-console': 'error',
      eqeqeq: ['error', 'smart'],
    },
  },
  { files: ['scripts/**'], languageOptions: { globals: { process: 'readonly', console: 'readonly', URL: 'readonly', Buffer: 'readonly' } }, rules: { 'no-console': 'off' } },
)
