/* The library behind the client in the order of libraries. */
int which_library(void) { return 2; }
