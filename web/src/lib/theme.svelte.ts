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
    this.chosen = this.dark ? 'light' : 'dark'
    localStorage.setItem(KEY, this.chosen)
    document.documentElement.dataset.theme = this.chosen
  }
}

export const theme = new Theme()
