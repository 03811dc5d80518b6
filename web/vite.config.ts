import { fileURLToPath } from 'node:url'

import { svelte } from '@sveltejs/vite-plugin-svelte'
import { defineConfig } from 'vitest/config'

// Where `npm run dev` finds a daemon; pages the daemon serves itself need none of this.
const daemon = process.env.LANYARD_ADDRESS ?? '127.0.0.1:4519'

export default defineConfig({
  plugins: [svelte()],
  // The variant for browsers decodes by way of `innerHTML`; this one has a table.
  resolve: { alias: { 'decode-named-character-reference': fileURLToPath(new URL('node_modules/decode-named-character-reference/index.js', import.meta.url)) } },
  build: {
    target: 'es2023',
    // The policy allows nothing inline, so nothing may be.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    // For scripts/size.mjs.
    manifest: true,
  },
  server: { proxy: { '/api': { target: `http://${daemon}`, ws: true } } },
  test: { include: ['src/**/*.test.ts'], environment: 'node' },
})
