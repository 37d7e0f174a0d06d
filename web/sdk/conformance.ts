// The conformance suite, which the package brings along as `@kubecast/sdk/conformance`.
export * from '../conformance/index.ts';
