import type { PageName } from '../view/view.ts';

/** Those that the header leads to. */
export const shownPages: readonly PageName[] = ['mine', 'overview', 'jobs', 'pods', 'history', 'kinds'];
