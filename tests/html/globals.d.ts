/** The vendored library, a script before those that use it. */
declare const uPlot: any;
