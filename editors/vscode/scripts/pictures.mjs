// Copies what `npm run e2e` photographed into the book: `npm run pictures`. Look at them before they are committed.
import { copyFileSync } from 'node:fs'
import { resolve } from 'node:path'

for (const name of ['needs-you', 'guidance', 'stop', 'review', 'plans']) {
  copyFileSync(resolve(import.meta.dirname, `../test-results/pictures/${name}.png`), resolve(import.meta.dirname, `../../../docs/pictures/vscode-${name}.png`))
}
