package dev

// DropForgotten is dropForgotten, for its test.
var DropForgotten = dropForgotten
