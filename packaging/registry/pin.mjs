// Makes the pinned copy of the ACP registry: `node packaging/registry/pin.mjs REGISTRY.json > acp-registry.json`. It keeps the
// agents of the pinned copy, takes their newest versions from npm and PyPI, and adds the checksums of npm packages.
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'

const [file] = process.argv.slice(2)
if (!file) throw new Error('give the path of a registry.json')
const registry = JSON.parse(readFileSync(file, 'utf8'))

const ofNpm = (name) => {
  const told = JSON.parse(execFileSync('npm', ['view', name, '--json', 'version', 'dist.integrity'], { encoding: 'utf8' }))
  return { version: told.version, integrity: told['dist.integrity'] }
}

const ofPyPi = async (name) => {
  const answer = await fetch(`https://pypi.org/pypi/${name}/json`)
  if (!answer.ok) throw new Error(`${name}: PyPI answered ${answer.status}`)
  return { version: (await answer.json()).info.version }
}

const pinned = async (agent) => {
  const { id, name, description, license, distribution } = agent
  const { npx, uvx } = distribution
  if (npx) {
    const plain = npx.package.replace(/(?<=.)@[^@/]*$/, '')
    const { version, integrity } = ofNpm(plain)
    return { id, name, version, description, license, distribution: { npx: { ...npx, package: `${plain}@${version}`, integrity } } }
  }
  if (uvx) {
    const plain = uvx.package.split('==')[0]
    const { version } = await ofPyPi(plain)
    return { id, name, version, description, license, distribution: { uvx: { ...uvx, package: `${plain}==${version}` } } }
  }
  return null
}

const agents = []
for (const agent of registry.agents) agents.push(await pinned(agent))
agents.sort((one, other) => (one.id < other.id ? -1 : 1))
console.log(JSON.stringify({ version: '1.0.0', agents: agents.filter((agent) => agent !== null) }, null, 2))
