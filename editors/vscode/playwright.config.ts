import { defineConfig, devices } from '@playwright/test'

// Against code-server and a daemon of its own each, in Debian's Chromium or the one that `CHROMIUM` names.
export default defineConfig({
  testDir: 'e2e',
  outputDir: 'test-results',
  // One code-server at a time: it starts some processes of its own.
  workers: 1,
  retries: 0,
  timeout: 120_000,
  expect: { timeout: 30_000 },
  reporter: [['list', { printSteps: false }]],
  use: {
    ...devices['Desktop Chrome'],
    viewport: { width: 1400, height: 900 },
    actionTimeout: 20_000,
    reducedMotion: 'reduce',
    screenshot: 'only-on-failure',
    launchOptions: {
      executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
      args: ['--no-sandbox', '--disable-gpu', '--disable-background-networking', '--disable-component-update', '--disable-sync', '--no-first-run'],
    },
  },
})
