import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    projects: [
      {
        test: { name: 'sdk', root: './sdk', include: ['src/**/*.test.ts'], environment: 'node' },
      },
    ],
  },
});
