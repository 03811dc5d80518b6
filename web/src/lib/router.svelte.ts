// Which page is shown. Addresses are paths, so that a page can be linked to, reloaded and gone back to.

interface Route {
  name: string
  params: Record<string, string>
}

/** Patterns in the order they are tried; `:x` is one part of a path. */
const PATTERNS: readonly [string, string][] = [
  ['/', 'overview'],
  ['/sign-in', 'sign-in'],
  ['/sessions/:id', 'session'],
  ['/sessions/:id/family', 'family'],
  ['/compare/:a/:b', 'compare'],
  ['/compare/:a/:b/:c', 'compare'],
  ['/compare/:a/:b/:c/:d', 'compare'],
  ['/comparisons/:id', 'compare'],
  ['/inbox', 'inbox'],
  ['/gates', 'gates'],
  ['/plans', 'plans'],
  ['/plans/:id', 'plan'],
  ['/flows', 'flows'],
  ['/flows/:id', 'flow'],
  ['/memory', 'memory'],
  ['/insight', 'insight'],
  ['/health', 'health'],
  ['/notifications', 'notifications'],
  ['/audit', 'audit'],
  ['/agents', 'agents'],
  ['/settings', 'settings'],
  ['/search', 'search'],
]

export function match(path: string): Route {
  const parts = path.split('/').filter((part) => part !== '')
  for (const [pattern, name] of PATTERNS) {
    const wanted = pattern.split('/').filter((part) => part !== '')
    if (wanted.length !== parts.length) continue
    const params: Record<string, string> = {}
    const fits = wanted.every((part, at) => {
      const found = parts[at] ?? ''
      if (!part.startsWith(':')) return part === found
      params[part.slice(1)] = decode(found)
      return true
    })
    if (fits) return { name, params }
  }
  return { name: 'unknown', params: {} }
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}

/** Addresses that pages once had, so that a bookmark goes on working. */
const MOVED: Record<string, string> = { '/continuity': '/health' }

class Router {
  path = $state(typeof location === 'undefined' ? '/' : location.pathname)
  search = $state(typeof location === 'undefined' ? '' : location.search)
  route: Route = $derived(match(this.path))
  query: URLSearchParams = $derived(new URLSearchParams(this.search))

  start(): () => void {
    const moved = MOVED[location.pathname]
    if (moved !== undefined) this.go(moved + location.search, true)
    const read = (): void => {
      this.path = location.pathname
      this.search = location.search
    }
    const click = (event: MouseEvent): void => {
      if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return
      const link = (event.target as Element | null)?.closest('a')
      if (!link || link.target !== '' || link.hasAttribute('download') || link.origin !== location.origin) return
      if (link.pathname.startsWith('/api/')) return
      event.preventDefault()
      this.go(link.pathname + link.search)
    }
    addEventListener('popstate', read)
    document.addEventListener('click', click)
    return () => {
      removeEventListener('popstate', read)
      document.removeEventListener('click', click)
    }
  }

  go(to: string, replace = false): void {
    if (replace) history.replaceState(null, '', to)
    else if (to !== location.pathname + location.search) history.pushState(null, '', to)
    this.path = location.pathname
    this.search = location.search
    if (!replace) scrollTo(0, 0)
  }

  /** Changes parts of the query, keeping the rest; empty ones go. */
  ask(changes: Record<string, string | null>): void {
    const query = new URLSearchParams(location.search)
    for (const [name, value] of Object.entries(changes)) {
      if (value === null || value === '') query.delete(name)
      else query.set(name, value)
    }
    const text = query.toString()
    this.go(location.pathname + (text === '' ? '' : `?${text}`), true)
  }
}

export const router = new Router()

export const sessionPath = (id: string): string => `/sessions/${encodeURIComponent(id)}`
