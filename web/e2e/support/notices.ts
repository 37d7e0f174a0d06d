// The browser's own notices, which a headless one shows nobody.

import type { BrowserContext, Page } from 'playwright-core';

/** Records what each page of a context, opened from now on, would have shown. Its user permits it when asked. */
export async function recordNotices(context: BrowserContext): Promise<void> {
  await context.addInitScript(() => {
    const notices: unknown[] = [];
    class Recorded {
      static permission = localStorage.getItem('test.permission') ?? 'default';
      static requestPermission(): Promise<string> {
        localStorage.setItem('test.permission', 'granted');
        Recorded.permission = 'granted';
        return Promise.resolve('granted');
      }
      readonly title: string;
      readonly tag: string;
      constructor(title: string, options: { tag: string }) {
        this.title = title;
        this.tag = options.tag;
        notices.push(this);
      }
      close(): void {
        Object.assign(this, { closed: true });
      }
    }
    // As in a browser, all tabs have it once one was given it.
    window.addEventListener('storage', ({ key, newValue }) => {
      if (key === 'test.permission') Recorded.permission = newValue ?? 'default';
    });
    Object.assign(window, { notices, Notification: Recorded });
  });
}

/** What a page has shown, in order. */
export const noticesOf = (page: Page): Promise<string[]> => page.evaluate(() => (window as unknown as { notices: { title: string }[] }).notices.map(({ title }) => title));

/** Headless, every page is in sight. */
export async function see(page: Page, visibility: DocumentVisibilityState): Promise<void> {
  await page.evaluate((now) => {
    Object.defineProperty(document, 'visibilityState', { value: now, configurable: true });
    document.dispatchEvent(new Event('visibilitychange'));
  }, visibility);
}
