import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    projects: [
      {
        test: { name: 'sdk', root: './sdk', include: ['src/**/*.test.ts'], environment: 'node' },
      },
      {
        resolve: { conditions: ['kubecast-source'] },
        test: {
          name: 'portal',
          root: './portal',
          include: ['src/**/*.test.{ts,tsx}'],
          environment: 'happy-dom',
          setupFiles: ['../mock/setup.ts'],
        },
      },
    ],
  },
});
