// What tests of the portal get for `react`: Preact, as in the build, and React's way to await its work.

export * from 'preact/compat';
export { act } from 'preact/test-utils';
