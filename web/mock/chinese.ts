import { vi } from 'vitest';

/** What `load` imports, as a page in Chinese has it. */
export async function inChinese<T>(load: () => Promise<T>): Promise<T> {
  localStorage.setItem('kubecast.language', 'zh-CN');
  vi.resetModules();
  try {
    return await load();
  } finally {
    localStorage.removeItem('kubecast.language');
    vi.resetModules();
  }
}
