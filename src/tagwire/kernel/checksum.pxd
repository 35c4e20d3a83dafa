# CRC-32C of long data by carry-less multiplication, 256 bytes a step, where the processor has it.

cdef extern from *:
    """
    #include <stddef.h>
    #include <stdint.h>
    #include <string.h>

    #if defined(__x86_64__) && defined(__GNUC__)
    #include <immintrin.h>
    #define TAGWIRE_TARGET __attribute__((target("avx512f,avx512vl,vpclmulqdq,pclmul,sse4.2")))

    static inline int tagwire_folds(void) {
        __builtin_cpu_init();
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
               __builtin_cpu_supports("vpclmulqdq") && __builtin_cpu_supports("sse4.2");
    }

    /* x^(distance + 32) and x^(distance - 32) modulo the polynomial, bits reversed, for a distance in bits: what a
       lane is multiplied with to stand that much later. */
    TAGWIRE_TARGET static inline __m512i tagwire_fold(__m512i lanes, __m512i by, __m512i onto) {
        return _mm512_ternarylogic_epi64(
            _mm512_clmulepi64_epi128(lanes, by, 0x00), _mm512_clmulepi64_epi128(lanes, by, 0x11), onto, 0x96);
    }

    /* What the bytes at `at`, at least 256, leave in a register that held `crc`; *end is where it stopped. */
    TAGWIRE_TARGET static inline uint64_t tagwire_fold_all(
        const unsigned char *at, size_t size, uint32_t crc, const unsigned char **end
    ) {
        const __m512i by2048 = _mm512_broadcast_i32x4(_mm_set_epi64x(0xb9e02b86, 0xdcb17aa4));
        const __m512i by512 = _mm512_broadcast_i32x4(_mm_set_epi64x(0x9e4addf8, 0x740eef02));
        __m512i a = _mm512_loadu_si512(at), b = _mm512_loadu_si512(at + 64);
        __m512i c = _mm512_loadu_si512(at + 128), d = _mm512_loadu_si512(at + 192);
        unsigned char left[64];
        uint64_t folded = 0, word;
        int i;
        a = _mm512_xor_si512(a, _mm512_zextsi128_si512(_mm_cvtsi32_si128((int) crc)));
        for (at += 256, size -= 256; size >= 256; at += 256, size -= 256) {
            a = tagwire_fold(a, by2048, _mm512_loadu_si512(at));
            b = tagwire_fold(b, by2048, _mm512_loadu_si512(at + 64));
            c = tagwire_fold(c, by2048, _mm512_loadu_si512(at + 128));
            d = tagwire_fold(d, by2048, _mm512_loadu_si512(at + 192));
        }
        d = tagwire_fold(tagwire_fold(tagwire_fold(a, by512, b), by512, c), by512, d);
        for (; size >= 64; at += 64, size -= 64)
            d = tagwire_fold(d, by512, _mm512_loadu_si512(at));
        _mm512_storeu_si512(left, d);
        for (i = 0; i < 64; i += 8) {
            memcpy(&word, left + i, 8);
            folded = _mm_crc32_u64(folded, word);
        }
        *end = at;
        return folded;
    }

    TAGWIRE_TARGET static inline uint32_t tagwire_crc32c(const unsigned char *at, size_t size, uint32_t before) {
        const unsigned char *end = at + size;
        uint64_t crc = (uint32_t) ~before, word;
        if (size >= 512)  /* for less, folding takes longer than it saves */
            crc = tagwire_fold_all(at, size, (uint32_t) crc, &at);
        size = end - at;
        for (; size >= 8; at += 8, size -= 8) {
            memcpy(&word, at, 8);
            crc = _mm_crc32_u64(crc, word);
        }
        while (size-- > 0)
            crc = _mm_crc32_u8((uint32_t) crc, *at++);
        return ~(uint32_t) crc;
    }
    #else
    static inline int tagwire_folds(void) {
        return 0;
    }

    static inline uint32_t tagwire_crc32c(const unsigned char *at, size_t size, uint32_t before) {
        (void) at;
        (void) size;
        (void) before;
        return 0;
    }
    #endif
    """
    bint folds "tagwire_folds"() noexcept
    unsigned int folded "tagwire_crc32c"(const unsigned char *at, size_t size, unsigned int before) noexcept nogil

cdef long long checksum_at(object data, Py_ssize_t start, Py_ssize_t end) except -1
