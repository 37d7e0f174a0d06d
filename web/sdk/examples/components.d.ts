declare module '*.vue' {
  const component: import('vue').Component;
  export default component;
}
declare module '*.svelte' {
  const component: import('svelte').Component<Record<string, unknown>>;
  export default component;
}
/** A block of a guide; see guides.ts. */
declare module 'guide:*' {
  const blocks: Record<string, never>;
  export = blocks;
}
declare module 'babel-preset-solid' {
  const preset: import('@babel/core').PluginTarget;
  export default preset;
}
