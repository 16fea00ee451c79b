/** The version of this package, which is that of Fetchwell. */
export const VERSION = "0.1.0";
