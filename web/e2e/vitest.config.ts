import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import { guides } from '../sdk/examples/guides.ts';

export default defineConfig({
  plugins: [guides()],
  test: {
    root: fileURLToPath(new URL('.', import.meta.url)),
    include: ['*.test.ts'],
    // Browsers and control planes: one at a time, or they only measure each other.
    fileParallelism: false,
    // Machines are slow at times, and an end costs nothing to what passes. What is promised within a time is measured by itself.
    expect: { poll: { timeout: 60_000 } },
    testTimeout: 300_000,
    hookTimeout: 300_000,
  },
});
