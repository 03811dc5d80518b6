import base from './playwright.config'

// `cargo xtask bench dashboard`: one thing at a time, against a release build.
export default { ...base, testDir: 'bench', testMatch: '*.bench.ts', workers: 1, retries: 0, timeout: 180_000, reporter: [['line']] }
