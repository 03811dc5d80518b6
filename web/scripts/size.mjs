// What a page costs on the wire: gzip sizes of the bundle against the budget of 150 kB.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'

const BUDGET = 150_000
const dist = new URL('../dist/', import.meta.url).pathname
const files = readdirSync(dist, { recursive: true, withFileTypes: true }).filter((file) => file.isFile())
let total = 0
for (const file of files) {
  const path = join(file.parentPath, file.name)
  const size = gzipSync(readFileSync(path), { level: 9 }).length
  total += size
  if (size > 4_000) console.log(`${(size / 1000).toFixed(1).padStart(8)} kB  ${path.slice(dist.length)}`)
}
console.log(`${(total / 1000).toFixed(1).padStart(8)} kB  the whole bundle, gzip; ${BUDGET / 1000} kB at most`)
if (total > BUDGET) {
  console.error(`error: the bundle is over its budget; see what grew, or load a page's code when it is opened`)
  process.exit(1)
}
