// What opening a page costs: the gzip sizes of all it loads, against the budget of 160 kB.
import { readFileSync } from 'node:fs'
import { gzipSync } from 'node:zlib'

const BUDGET = 160_000
const dist = new URL(`file://${process.env.LANYARD_DASHBOARD_DIR ?? new URL('../dist', import.meta.url).pathname}/`)
const manifest = JSON.parse(readFileSync(new URL('.vite/manifest.json', dist), 'utf8'))
const sizes = new Map()

function size(file) {
  if (!sizes.has(file)) sizes.set(file, gzipSync(readFileSync(new URL(file, dist)), { level: 9 }).length)
  return sizes.get(file)
}

/** The files a chunk needs before it runs. */
function files(name, found = new Set()) {
  const chunk = manifest[name]
  if (found.has(chunk.file)) return found
  for (const file of [chunk.file, ...(chunk.css ?? [])]) found.add(file)
  for (const other of chunk.imports ?? []) files(other, found)
  return found
}

const sum = (names) => [...names].reduce((all, name) => all + size(name), 0)
const kB = (bytes) => `${(bytes / 1000).toFixed(1).padStart(7)} kB`
const entry = Object.keys(manifest).find((name) => manifest[name].isEntry)
const ground = files(entry)
const pages = manifest[entry].dynamicImports.map((name) => ({ name, bytes: sum(files(name, new Set(ground))) + size('index.html') }))
pages.sort((a, b) => b.bytes - a.bytes)
for (const page of pages) console.log(`${kB(page.bytes)}  ${page.name.replace(/^src\/pages\/|\.svelte$/g, '')}`)
const every = new Set(Object.keys(manifest).flatMap((name) => [...files(name)]))
console.log(`${kB(sum(every))}  all pages together; ${BUDGET / 1000} kB at most for any one (gzip)`)
if ((pages[0]?.bytes ?? 0) > BUDGET) {
  console.error('error: the largest page is over its budget; see what grew, or load it when it is opened')
  process.exit(1)
}
