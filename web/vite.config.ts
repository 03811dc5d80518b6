import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { brotliCompressSync, constants, gzipSync } from 'node:zlib'

import { svelte } from '@sveltejs/vite-plugin-svelte'
import type { Plugin } from 'vite'
import { defineConfig } from 'vitest/config'

// Where `npm run dev` finds a daemon; pages the daemon serves itself need none of this.
const daemon = process.env.LANYARD_ADDRESS ?? '127.0.0.1:4519'

/** Lists the third-party packages whose code is in the bundle, for the bill of materials of `cargo xtask dist`. */
function bundledPackages(): Plugin {
  return {
    name: 'lanyard:bundled-packages',
    generateBundle(_options, bundle) {
      const folders = new Set<string>()
      for (const item of Object.values(bundle)) {
        for (const id of item.type === 'chunk' ? item.moduleIds : []) {
          const folder = /\/(node_modules\/(?:.*\/node_modules\/)?(?:@[^/]+\/)?[^/]+)\//.exec(id)?.[1]
          if (folder !== undefined) folders.add(folder)
        }
      }
      const packages = [...folders].sort().map((folder) => {
        const { name, version, license } = JSON.parse(readFileSync(new URL(`${folder}/package.json`, import.meta.url), 'utf8')) as Record<string, string>
        return { name, version, license, folder }
      })
      this.emitFile({ type: 'asset', fileName: '.vite/packages.json', source: JSON.stringify(packages, null, 2) })
    },
  }
}

/** Smaller files are not worth a second one beside them. */
const COMPRESSED_FROM = 1_024

/** Puts a compressed copy beside each asset: brotli for pages over TLS, gzip for all others. The daemon compresses nothing. */
function compressedAssets(): Plugin {
  return {
    name: 'lanyard:compressed-assets',
    // Of what is really on the disk: what is generated is still changed until then.
    writeBundle({ dir }, bundle) {
      for (const name of Object.keys(bundle).filter((name) => /^assets\/.*\.(?:js|css|svg)$/.test(name))) {
        const file = `${dir ?? 'dist'}/${name}`
        const content = readFileSync(file)
        if (content.length < COMPRESSED_FROM) continue
        writeFileSync(`${file}.br`, brotliCompressSync(content, { params: { [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY } }))
        writeFileSync(`${file}.gz`, gzipSync(content, { level: 9 }))
      }
    },
  }
}

export default defineConfig({
  plugins: [svelte(), bundledPackages(), compressedAssets()],
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
