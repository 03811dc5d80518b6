// Builds the extension (esbuild) and the page of a session (the dashboard's own build tools, from web/).
import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'

import { build } from 'esbuild'

const here = new URL('../', import.meta.url).pathname
const web = new URL('../../../web/', import.meta.url).pathname

if (!existsSync(`${web}node_modules/vite`)) {
  console.error('The session page is made from the dashboard: run `npm ci` and `npm run types` in web/ first.')
  process.exit(1)
}

rmSync(`${here}dist`, { recursive: true, force: true })
await build({
  entryPoints: [`${here}src/extension.ts`],
  outfile: `${here}dist/extension.cjs`,
  bundle: true,
  platform: 'node',
  format: 'cjs',
  target: 'node22',
  external: ['vscode'],
  minify: true,
  logLevel: 'warning',
})

/** Writes THIRD-PARTY.txt: the packages whose code is in the page, with their licences. */
function notices() {
  return {
    name: 'lanyard:notices',
    generateBundle(_options, bundle) {
      const ids = Object.values(bundle).flatMap((item) => (item.type === 'chunk' ? item.moduleIds : []))
      const folders = new Set(ids.map((id) => /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+(?=\/)/.exec(id)?.[0]).filter((folder) => folder !== undefined))
      const parts = [...folders].sort().map((folder) => {
        const { name, version, license } = JSON.parse(readFileSync(`${folder}/package.json`, 'utf8'))
        const text = readdirSync(folder).find((file) => /^licen[cs]e/i.test(file))
        return `${name} ${version}, ${license}\n\n${text === undefined ? '' : readFileSync(`${folder}/${text}`, 'utf8').trim()}`
      })
      this.emitFile({ type: 'asset', fileName: 'THIRD-PARTY.txt', source: `${parts.join(`\n\n${'-'.repeat(80)}\n\n`)}\n` })
    },
  }
}

const fromWeb = createRequire(`${web}package.json`)
const load = (name) => import(pathToFileURL(fromWeb.resolve(name)).href)
const [vite, { svelte }] = await Promise.all([load('vite'), load('@sveltejs/vite-plugin-svelte')])
await vite.build({
  root: web,
  configFile: false,
  publicDir: false,
  logLevel: 'warn',
  plugins: [svelte({ configFile: `${web}svelte.config.js` }), notices()],
  resolve: {
    dedupe: ['svelte'],
    alias: {
      $web: `${web}src`,
      // The variant for browsers decodes by way of `innerHTML`; this one has a table.
      'decode-named-character-reference': `${web}node_modules/decode-named-character-reference/index.js`,
    },
  },
  build: {
    outDir: `${here}dist/webview`,
    emptyOutDir: true,
    target: 'es2023',
    assetsInlineLimit: 0,
    cssCodeSplit: false,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    rollupOptions: {
      input: `${here}webview/main.ts`,
      output: { entryFileNames: 'session.js', assetFileNames: ({ names }) => (names[0]?.endsWith('.css') ? 'session.css' : '[name][extname]'), codeSplitting: false },
    },
  },
})
