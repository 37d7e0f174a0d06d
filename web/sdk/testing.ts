// The mock gateway, which the package brings along as `@kubecast/sdk/testing`.
export * from '../mock/index.ts';
