// What lists that grow page by page show of that; the names are TanStack Query's.

import type { Trouble } from './state.ts';

/** Of a list that grows page by page. Which of it is shown stays live. */
export interface Infinite {
  /** There is more behind the last row. */
  readonly hasNextPage: boolean;
  /** The next page was asked for, and is not there yet. */
  readonly isFetchingNextPage: boolean;
  /** Why it is not: what is there stays as it is. While `isFetchingNextPage`, that is mended; otherwise `fetchNextPage` asks again. */
  readonly nextPageError: Trouble | undefined;
}

/** What can be done with such a list. */
export interface Grows {
  /** Asks for the next page, if there is one and it is not on its way; what failed is asked for at once. May be passed around unbound. */
  readonly fetchNextPage: () => void;
}

export const notGrowing: Infinite = { hasNextPage: false, isFetchingNextPage: false, nextPageError: undefined };
