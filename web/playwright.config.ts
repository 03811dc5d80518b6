import { resolve } from 'node:path'

import { defineConfig, devices } from '@playwright/test'

// Against a real daemon each. Everything in Debian's Chromium, or whichever `CHROMIUM` names; tests tagged `@firefox` in
// Debian's Firefox too, or whichever `FIREFOX` names. See e2e/support/daemon.ts and e2e/firefox/firefox.mjs.
const desktop = { ...devices['Desktop Firefox'], userAgent: undefined }

export default defineConfig({
  testDir: 'e2e',
  outputDir: 'test-results',
  fullyParallel: true,
  workers: 2,
  // A test that passes only the second time is a defect, and a second try would hide it.
  retries: 0,
  // Several looks of axe at a full page take long on a busy machine.
  timeout: 120_000,
  expect: { timeout: 15_000 },
  reporter: [['list', { printSteps: false }]],
  use: { viewport: { width: 1280, height: 800 }, screenshot: 'only-on-failure' },
  projects: [
    {
      name: 'chromium',
      use: {
        ...devices['Desktop Chrome'],
        viewport: { width: 1280, height: 800 },
        reducedMotion: 'reduce',
        launchOptions: {
          executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
          args: ['--no-sandbox', '--disable-gpu', '--disable-background-networking', '--disable-component-update', '--disable-sync', '--no-first-run'],
        },
      },
    },
    {
      name: 'firefox',
      grep: /@firefox/,
      use: {
        ...desktop,
        viewport: { width: 1280, height: 800 },
        channel: 'moz-firefox',
        launchOptions: {
          executablePath: resolve(import.meta.dirname, 'e2e/firefox/firefox.mjs'),
          firefoxUserPrefs: { 'ui.prefersReducedMotion': 1 },
        },
      },
    },
  ],
})
