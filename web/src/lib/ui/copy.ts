import { toasts } from '../toasts.svelte'

/** Copies a text and says so; `advice` is for a browser that does not let it. */
export async function copy(text: string, advice = 'Select the text and copy it by hand.'): Promise<void> {
  try {
    await navigator.clipboard.writeText(text)
    toasts.say('Copied')
  } catch {
    toasts.say('This browser did not let the page copy', 'bad', advice)
  }
}
