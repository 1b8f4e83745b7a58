/** How long to wait before the next start: longer after every death that came soon. */
export class Backoff {
  private deaths = 0;

  /** The milliseconds to wait after a life of `livedMs`. */
  afterDeath(livedMs: number): number {
    if (livedMs > 60_000) this.deaths = 0;
    this.deaths += 1;
    return Math.min(30_000, 500 * 2 ** (this.deaths - 1));
  }

  reset(): void {
    this.deaths = 0;
  }
}
