// Types of the session page, checked with the dashboard's own tools.
import { spawnSync } from 'node:child_process'

const here = new URL('../', import.meta.url).pathname
const web = new URL('../../../web/', import.meta.url).pathname
const done = spawnSync(process.execPath, [`${web}node_modules/svelte-check/bin/svelte-check`, '--workspace', `${here}webview`, '--tsconfig', `${here}webview/tsconfig.json`, '--fail-on-warnings', '--output', 'human'], { stdio: 'inherit', cwd: web })
process.exit(done.status ?? 1)
