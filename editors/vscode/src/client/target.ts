// Where the daemon is: the socket and token of a data folder, or a configured address.
import { homedir } from 'node:os'
import { isAbsolute, join } from 'node:path'

export interface SocketTarget {
  kind: 'socket'
  folder: string
  socket: string
  tokenFile: string
}

export interface AddressTarget {
  kind: 'address'
  /** Without a slash at the end. */
  base: string
}

export type Target = SocketTarget | AddressTarget

export interface Wanted {
  address: string
  dataFolder: string
}

type Environment = Readonly<Record<string, string | undefined>>

/** The same rules as the `lanyard` program has for its data folder. */
export function dataFolder(wanted: string, environment: Environment, home = homedir()): string {
  if (wanted !== '') return wanted.startsWith('~/') ? join(home, wanted.slice(2)) : wanted
  const named = environment.LANYARD_DATA_DIR
  if (named !== undefined && named !== '') return named
  const base = environment.XDG_DATA_HOME
  return join(base !== undefined && isAbsolute(base) ? base : join(home, '.local/share'), 'lanyard')
}

/** Null for an address that is none. */
export function targetOf(wanted: Wanted, environment: Environment, home?: string): Target | null {
  if (wanted.address.trim() === '') {
    const folder = dataFolder(wanted.dataFolder.trim(), environment, home)
    return { kind: 'socket', folder, socket: join(folder, 'lanyard.sock'), tokenFile: join(folder, 'token') }
  }
  return addressOf(wanted.address.trim())
}

/** A token goes in the clear only to this machine. */
function addressOf(text: string): AddressTarget | null {
  let url: URL
  try {
    url = new URL(text.includes('://') ? text : `http://${text}`)
  } catch {
    return null
  }
  const local = ['127.0.0.1', '[::1]', 'localhost'].includes(url.hostname)
  if (url.protocol !== 'https:' && !(url.protocol === 'http:' && local)) return null
  if (url.username !== '' || url.password !== '') return null
  return { kind: 'address', base: url.origin }
}
