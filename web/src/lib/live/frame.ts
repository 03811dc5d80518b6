/** What is to be drawn, once for many changes: with the next frame of the screen. */
export class Frame {
  #waits = false

  constructor(private readonly draw: () => void) {}

  ask(): void {
    if (this.#waits) return
    this.#waits = true
    // A page in the background draws nothing, and its timers still run.
    const soon = document.visibilityState === 'visible' ? requestAnimationFrame : (run: () => void) => setTimeout(run, 250)
    soon(() => {
      this.#waits = false
      this.draw()
    })
  }
}
