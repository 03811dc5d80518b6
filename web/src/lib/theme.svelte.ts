// Light or dark: the system's choice until somebody makes one here.
const KEY = 'lanyard.theme'

class Theme {
  chosen: string | null = $state(typeof localStorage === 'undefined' ? null : localStorage.getItem(KEY))
  #system = $state(typeof matchMedia === 'undefined' ? false : matchMedia('(prefers-color-scheme: dark)').matches)
  dark = $derived(this.chosen === null ? this.#system : this.chosen === 'dark')

  start(): () => void {
    const media = matchMedia('(prefers-color-scheme: dark)')
    const read = (): void => void (this.#system = media.matches)
    media.addEventListener('change', read)
    if (this.chosen !== null) document.documentElement.dataset.theme = this.chosen
    return () => media.removeEventListener('change', read)
  }

  flip(): void {
    this.choose(this.dark ? 'light' : 'dark')
  }

  /** `null`: as the system has it. */
  choose(theme: 'light' | 'dark' | null): void {
    this.chosen = theme
    if (theme === null) {
      localStorage.removeItem(KEY)
      delete document.documentElement.dataset.theme
    } else {
      localStorage.setItem(KEY, theme)
      document.documentElement.dataset.theme = theme
    }
  }
}

export const theme = new Theme()
