// Makes dist/lanyard-VERSION.vsix of what was built, and checks what is in it and how large it is.
import { copyFileSync, readFileSync, rmSync, statSync } from 'node:fs'

import { createVSIX } from '@vscode/vsce'

const here = new URL('../', import.meta.url).pathname
/** All files of the package; anything else, such as a source or a folder of packages, fails. */
const WANTED = [
  '[Content_Types].xml',
  'extension.vsixmanifest',
  'extension/LICENSE.txt',
  'extension/dist/extension.cjs',
  'extension/dist/webview/THIRD-PARTY.txt',
  'extension/dist/webview/session.css',
  'extension/dist/webview/session.js',
  'extension/media/lanyard.png',
  'extension/media/lanyard.svg',
  'extension/package.json',
  'extension/readme.md',
]
const BYTES_MAX = 250_000

/** Names in the central directory of a zip archive. */
function entries(zip) {
  const end = zip.lastIndexOf(Buffer.from([0x50, 0x4b, 5, 6]))
  const names = []
  for (let at = zip.readUInt32LE(end + 16), left = zip.readUInt16LE(end + 10); left > 0; left -= 1) {
    const length = zip.readUInt16LE(at + 28)
    names.push(zip.toString('utf8', at + 46, at + 46 + length))
    at += 46 + length + zip.readUInt16LE(at + 30) + zip.readUInt16LE(at + 32)
  }
  return names.sort()
}

const { version } = JSON.parse(readFileSync(`${here}package.json`, 'utf8'))
const out = `${here}dist/lanyard-${version}.vsix`
copyFileSync(`${here}../../LICENSE-MIT`, `${here}LICENSE`)
try {
  await createVSIX({ cwd: here, packagePath: out, dependencies: false, allowMissingRepository: true })
} finally {
  rmSync(`${here}LICENSE`)
}

const found = entries(readFileSync(out))
const faults = [...found.filter((name) => !WANTED.includes(name)).map((name) => `${name} does not belong in it`), ...WANTED.filter((name) => !found.includes(name)).map((name) => `${name} is missing`)]
const bytes = statSync(out).size
if (bytes > BYTES_MAX) faults.push(`it has ${bytes} bytes and may have ${BYTES_MAX}`)
if (faults.length > 0) {
  console.error(`${out}: ${faults.join('; ')}`)
  process.exit(1)
}
console.log(`${out}: ${found.length} files, ${bytes} bytes`)
