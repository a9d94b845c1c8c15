/** Entry `effect-frontend-tools/testing`: a bridge and applications in memory, for the tests of programs that embed it. */
export * as ScriptedModel from "./layers/backend/ScriptedModel.ts"
export * as TestApplication from "./layers/testing/TestApplication.ts"
export * as TestBridge from "./layers/testing/TestBridge.ts"
export * as TestLine from "./layers/testing/TestLine.ts"
export * as TestTool from "./layers/testing/TestTool.ts"
