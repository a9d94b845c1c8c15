/** What the command line says of a failure: one line, and never a key. */
import { type Config, Schema, SchemaIssue } from "effect"
import type { CliError } from "effect/cli"

const issuesOf = SchemaIssue.makeFormatterStandardSchemaV1()

/** A word where a key may have landed: behind its namespace, or alone. */
const mayHoldKey = (word: string) => word.includes("=") || /[0-9a-f]{64}/.test(word)

const NOT_SHOWN = "(not shown: it may hold a key)"

/** The fault of an invocation. */
export const explainInvocation = (error: CliError.NonShowHelpErrors): string => {
  if (error._tag === "UnexpectedArgument" && error.arguments.some(mayHoldKey)) {
    return `Unexpected positional argument ${NOT_SHOWN}`
  }
  if (error._tag === "UnknownSubcommand" && mayHoldKey(error.subcommand)) return `Unknown subcommand ${NOT_SHOWN}`
  if (error._tag === "InvalidValue" && mayHoldKey(error.value)) {
    return `Invalid value for flag --${error.option} ${NOT_SHOWN}`
  }
  return error.message
}

/** The fault of a setting in the environment, by the variable's name. */
export const explainConfig = ({ cause }: Config.ConfigError): string =>
  Schema.isSchemaError(cause)
    ? issuesOf(cause.issue)
        .issues.map(({ message, path }) => `${(path ?? []).map(String).join("_")}: ${message}`)
        .join("; ")
    : cause.message

/** As it stands on standard error. */
export const toLine = (program: string, message: string): string =>
  `${program}: ${message.replaceAll(/\s+/g, " ").trim()}`
