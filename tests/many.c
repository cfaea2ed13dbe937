/* many.c: an archive of many small tensors (many.h). SPDX-License-Identifier: Apache-2.0 */
#include "tests/many.h"

#include <stdio.h>
#include <xxhash.h>

#include "common/bytecode.h"

static uint8_t data_byte(uint64_t at) { return (uint8_t)(at * 2654435761u >> 13); }

void many_write(unsigned count, uint64_t (*size)(unsigned), struct buffer *out)
{
	struct buffer header = { 0 }, indx = { 0 }, sums = { 0 }, payload = { 0 };
	struct ar_prelude prelude = { .version = 1 };
	uint8_t zero[AR_PRELUDE_NBYTES] = { 0 }, instr[16] = { OP_LIT_RAW, 8 };
	uint64_t at = 0;
	for (unsigned i = 0; i < count; i++) {
		char name[32];
		buffer_put(&header, name, (size_t)snprintf(name, sizeof name, "\"t%u\",", i));
	}
	buffer_put_varint(&indx, 1 + count);
	static const uint8_t header_kind[1] = { AR_HEADER };
	buffer_put(&indx, header_kind, 1);
	buffer_put_varint(&indx, header.nbytes);
	buffer_put_u8(&indx, 8);
	buffer_put_varint(&indx, 1 << 16);
	buffer_put_varint(&indx, 1);
	buffer_put_varint(&indx, 0);
	for (uint64_t k = 0; k < header.nbytes; k += 1 << 16) {
		uint64_t n = MIN(header.nbytes - k, (uint64_t)1 << 16);
		buffer_put_varint(&indx, n);
		buffer_put_u64(&sums, XXH3_64bits(header.data + k, n));
	}
	buffer_put(&payload, header.data, header.nbytes);
	for (unsigned i = 0; i < count; i++) {
		char name[32];
		uint64_t n = size(i);
		buffer_put_u8(&indx, AR_TENSOR);
		buffer_put_zigzag(&indx, i ? 3 : 1);
		buffer_put_varint(&indx, 2 * (uint64_t)snprintf(name, sizeof name, "t%u", i));
		buffer_put_u8(&indx, 4);
		buffer_put_varint(&indx, 1);
		buffer_put_varint(&indx, n);
		buffer_put_u8(&indx, 8);
		buffer_put_varint(&indx, 4096);
		buffer_put_varint(&indx, 0);
		buffer_put_varint(&indx, n > 0);
		if (n > 0)
			buffer_put_varint(&indx, 0);
		for (uint64_t k = 0; k < n; k += 4096) {
			uint64_t part = MIN(n - k, (uint64_t)4096);
			uint8_t *bytes = buffer_grow(&payload, part);
			for (uint64_t b = 0; b < part; b++)
				bytes[b] = data_byte(at++);
			buffer_put_varint(&indx, part);
			buffer_put_u64(&sums, XXH3_64bits(bytes, part));
		}
	}
	*out = (struct buffer){ 0 };
	buffer_put(out, zero, sizeof zero);
	buffer_put_varint(out, 1);
	buffer_put_varint(out, 1);
	buffer_put(out, instr, 16);
	prelude.section[AR_CODE].stored_nbytes = 18;
	buffer_put_varint(out, 0);
	prelude.section[AR_TABL].stored_nbytes = 1;
	buffer_put(out, indx.data, indx.nbytes);
	prelude.section[AR_INDX].stored_nbytes = indx.nbytes;
	buffer_put(out, sums.data, sums.nbytes);
	prelude.section[AR_SUMS].stored_nbytes = sums.nbytes;
	for (unsigned i = 0; i < AR_SECTIONS; i++)
		prelude.section[i].decoded_nbytes = prelude.section[i].stored_nbytes;
	prelude.sections_sum = XXH3_64bits(out->data + AR_PRELUDE_NBYTES, out->nbytes - AR_PRELUDE_NBYTES);
	buffer_put(out, payload.data, payload.nbytes);
	prelude.payload_nbytes = payload.nbytes;
	prelude.archive_nbytes = out->nbytes;
	prelude_write(&prelude, out->data);
	buffer_free(&header);
	buffer_free(&indx);
	buffer_free(&sums);
	buffer_free(&payload);
}

/* Sizes from nothing to some chunks, and one tensor of 5 MiB among them. */
uint64_t many_mixed_size(unsigned i) { return i == 700 ? 5 << 20 : i % 7 == 0 ? 0 : i * 37 % 9000; }

bool many_is_data(const uint8_t *bytes, uint64_t offset, uint64_t nbytes)
{
	for (uint64_t i = 0; i < nbytes; i++)
		if (bytes[i] != data_byte(offset + i))
			return false;
	return true;
}
