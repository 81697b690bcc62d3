package once

// Library is all scripts.
var Library = library
