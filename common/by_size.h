/* by_size.h: a loop written once for words of 1, 2, 4 and 8 bytes. SPDX-License-Identifier: Apache-2.0 */
#ifndef COMMON_BY_SIZE_H
#define COMMON_BY_SIZE_H

#include <stdint.h>

/* Runs the statements with the type name T standing for words of `size` bytes, which need no alignment: streams may lie in a payload. */
#define BY_SIZE_WORD __attribute__((aligned(1), may_alias))
#define BY_SIZE(T, size, ...) \
	switch (size) { \
	case 1: { typedef uint8_t T BY_SIZE_WORD; __VA_ARGS__ } break; \
	case 2: { typedef uint16_t T BY_SIZE_WORD; __VA_ARGS__ } break; \
	case 4: { typedef uint32_t T BY_SIZE_WORD; __VA_ARGS__ } break; \
	default: { typedef uint64_t T BY_SIZE_WORD; __VA_ARGS__ } break; \
	}

#endif
