// Who is signed in here, and what that may do.
import { ApiError, get, onSignedOut, post, problem } from './api/client'
import type { Me as Known, SignedIn } from './api/types'
import { directory } from './live/directory.svelte'
import { records } from './live/records.svelte'

type Standing = 'asking' | 'in' | 'out' | 'unreachable'

class Me {
  standing: Standing = $state('asking')
  known: Known | null = $state.raw(null)
  /** Observers look and change nothing; the daemon would refuse them. */
  operator = $derived(this.known?.role === 'operator')
  /** The one session that a share link shows, with those below it. */
  shared = $derived(this.known?.role === 'observer' ? (this.known.session ?? null) : null)

  async ask(): Promise<void> {
    try {
      this.known = await get<Known>('/me')
      this.standing = 'in'
      // A reader of a link sees no other session.
      if (this.shared !== null) return
      directory.open(() => this.leave())
      records.open(() => this.leave())
    } catch (error) {
      this.standing = problem(error).status === 0 ? 'unreachable' : 'out'
    }
  }

  /** Takes the code of a link, and answers the session that a share link leads to. */
  async signIn(code: string): Promise<ApiError | { session: string | null }> {
    try {
      const { session } = await post<SignedIn>('/sign-in', { code })
      await this.ask()
      return { session: session ?? null }
    } catch (error) {
      this.standing = 'out'
      return problem(error)
    }
  }

  async signOut(): Promise<void> {
    await post('/sign-out').catch(() => undefined)
    this.leave()
  }

  leave(): void {
    directory.close()
    records.close()
    this.known = null
    this.standing = 'out'
  }
}

export const me = new Me()
onSignedOut(() => {
  if (me.standing === 'in') me.leave()
})
