// Who is to be told of something.

export class Listeners {
  // A subscription is an object of its own: one function may be given twice, and taken back once.
  readonly #all = new Set<{ readonly listener: () => void }>();

  /** What it returns takes the subscription back, and says whether it still was one. */
  readonly subscribe = (listener: () => void): (() => boolean) => {
    const subscription = { listener };
    this.#all.add(subscription);
    return () => this.#all.delete(subscription);
  };

  /** Those who have left meanwhile are told no more; one that throws keeps the news from nobody else. */
  tell(): void {
    for (const subscription of [...this.#all]) {
      if (!this.#all.has(subscription)) continue;
      try {
        subscription.listener();
      } catch (error) {
        console.error(error);
      }
    }
  }
}
