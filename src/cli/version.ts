/** The version of the package, as its manifest says it. */
export const VERSION = "0.1.0"
