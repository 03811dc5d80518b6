// One clock for all that shows how long ago something was.
class Ticking {
  now = $state(Date.now())

  start(): () => void {
    const timer = setInterval(() => (this.now = Date.now()), 1_000)
    return () => clearInterval(timer)
  }
}

export const clock = new Ticking()
