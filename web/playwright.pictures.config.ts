import base from './playwright.config'

// `npm run pictures`: the pages as docs/dashboard.md shows them, from a daemon with the scripted agent.
export default { ...base, testDir: 'pictures', testMatch: '*.pictures.ts', workers: 1, reporter: [['line']] }
